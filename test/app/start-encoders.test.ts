import { expect, it } from 'vitest';
import { ConfigError, parseConfig } from '../../src/app/config.ts';
import { createLogger } from '../../src/observation/logging.ts';
import { startEncoders } from '../../src/app/encoders.ts';

const logger = createLogger({ level: 'silent' });

async function start(environment: Record<string, string>): Promise<void> {
  const encoders = await startEncoders(parseConfig(environment), logger, {
    listModelVersions: async () => [],
  });
  await encoders.close();
}

it.each(['10.0.0.1:50051', 'encoder.example:50051', '127.0.0.1:1,[::]:50051', 'dns:///localhost:1'])(
  'encoders at %s are not spoken to without TLS',
  async (addresses) => {
    const started = start({ MAXSIMD_ENCODERS: addresses });
    await expect(started).rejects.toThrow(ConfigError);
    await expect(started).rejects.toThrow('MAXSIMD_ALLOW_PLAIN=encoders');
  },
);

it('encoders elsewhere are spoken to with TLS, or without where that is allowed in so many words', async () => {
  // Another address to the eye, and this machine.
  const environment = { MAXSIMD_ENCODERS: '0.0.0.0:1' };
  const secured = start({ ...environment, MAXSIMD_ENCODER_TLS_FILES: import.meta.filename });
  await expect(secured).resolves.toBeUndefined();
  await expect(start({ ...environment, MAXSIMD_ALLOW_PLAIN: 'encoders' })).resolves.toBeUndefined();
});

it('encoders of this machine are spoken to without TLS', async () => {
  const addresses = 'unix:/nowhere/x.sock, 127.0.0.1:1, localhost:1, [::1]:1';
  await expect(start({ MAXSIMD_ENCODERS: addresses })).resolves.toBeUndefined();
});

it.each(['ca.pem,certificate.pem', 'a,b,c,d'])('%s are no files for TLS to encoders', (files) => {
  expect(() => parseConfig({ MAXSIMD_ENCODER_TLS_FILES: files })).toThrow('ca.pem,certificate.pem,key.pem');
});

it.each(['dns:///encoders', 'dns:encoders:50051'])('%s names no encoders', (addresses) => {
  expect(() => parseConfig({ MAXSIMD_ENCODERS: addresses })).toThrow('dns:///encoders:50051');
});
