/** The configuration takes some variables, ignores others, and says why it refuses one. */
import { removedSettings } from '../../src/app/removed-settings.ts';
import { describe, expect, it } from 'vitest';
import { ConfigError, describeConfig, parseConfig, serviceLinksIn } from '../../src/app/config.ts';

function refusal(environment: Readonly<Record<string, string>>): string {
  try {
    parseConfig(environment);
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as Error).message.replace(/^bad configuration: /, '');
  }
  throw new Error('it was taken');
}

describe('a bad value is answered with what would be right', () => {
  it.each([
    ['MAXSIMD_HTTP_PORT', 'abc', 'must be a whole number from 0 to 65535, got "abc"'],
    ['MAXSIMD_HTTP_PORT', '', 'must be a whole number from 0 to 65535, got ""'],
    ['MAXSIMD_HTTP_PORT', '0x50', 'must be a whole number from 0 to 65535, got "0x50"'],
    ['MAXSIMD_HTTP_PORT', '80.5', 'must be a whole number from 0 to 65535, got "80.5"'],
    ['MAXSIMD_HTTP_PORT', '65536', 'must be a whole number from 0 to 65535, got "65536"'],
    ['MAXSIMD_METRICS_PORT', 'x', 'must be auto, or a whole number from -1 to 65535, got "x"'],
    ['MAXSIMD_TRUST_PROXY', 'yes', 'must be true, false, 1 or 0, got "yes"'],
    ['MAXSIMD_PROVIDER', 'tpu', 'must be auto, cpu, cuda, or cuda: and numbers of GPUs, as in cuda:0,1'],
    ['MAXSIMD_TLS_FILES', 'certificate.pem', 'must be certificate.pem,key.pem'],
    ['MAXSIMD_ALLOW_PLAIN', 'https', 'must be words of http, metrics, encoders with commas between them'],
    ['MAXSIMD_DATA_DIR', '', 'must not be empty'],
    ['MAXSIMD_BLOBS_URL', 'bucket', 'must be s3://bucket/prefix'],
  ])('%s=%s', (name, value, words) => {
    expect(refusal({ [name]: value })).toBe(`${name} ${words}`);
  });

  it('the share of traces is checked where traces are on', () => {
    const share = { OTEL_TRACES_SAMPLER_ARG: '2' };
    expect(refusal({ ...share, MAXSIMD_TRACES_URL: 'http://host:4318/v1/traces' })).toBe(
      'OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1, got "2"',
    );
    expect(parseConfig(share).OTEL_TRACES_SAMPLER_ARG).toBe(1);
  });

  it('and no password is repeated', () => {
    for (const name of [
      'MAXSIMD_CATALOG_URL',
      'MAXSIMD_LIMITER_URL',
      'MAXSIMD_BLOBS_URL',
      'MAXSIMD_TRACES_URL',
    ])
      expect(refusal({ [name]: 'ftp://user:secret@host' })).not.toContain('secret');
  });

  it('in no words of the parser, whatever the variable', () => {
    for (const { name } of describeConfig()) {
      for (const value of ['', 'a b', '-9', '1e99']) {
        let message = '';
        try {
          parseConfig({ [name]: value });
        } catch (error) {
          message = (error as Error).message;
        }
        expect(message).not.toMatch(/invalid|expected|received|pattern|NaN|too (small|big)/i);
      }
    }
  });
});

describe('an unknown variable', () => {
  it.each([
    ['MAXSIMD_PORT', 'MAXSIMD_HTTP_PORT'],
    ['MAXSIMD_HTTP_PROT', 'MAXSIMD_HTTP_PORT'],
    ['MAXSIMD_HOST', 'MAXSIMD_HTTP_HOST'],
    ['MAXSIMD_TIMEOUT_UPSERT', 'MAXSIMD_TIMEOUT_UPSERT_MS'],
    ['MAXSIMD_APIKEY', 'MAXSIMD_API_KEY'],
    ['MAXSIMD_ENCODER_THREAD', 'MAXSIMD_ENCODER_THREADS'],
  ])('%s suggests %s', (name, near) => {
    expect(refusal({ [name]: '1' })).toBe(`${name} is not a variable of maxsimd (did you mean ${near}?)`);
  });

  it('that is like none suggests none', () => {
    expect(refusal({ MAXSIMD_NONSENSE: '1' })).toBe('MAXSIMD_NONSENSE is not a variable of maxsimd');
  });
});

describe('a setting of an earlier version', () => {
  it.each(Object.entries(removedSettings))(
    'MAXSIMD_%s ends the start, and the message says: %s',
    (word, instead) => {
      const name = `MAXSIMD_${word}`;
      expect(refusal({ [name]: '1' })).toBe(`${name} is no longer a setting: ${instead}`);
    },
  );
});

describe('variables that Kubernetes sets for Services', () => {
  /** The variables of two Services: `maxsimd` with a named port, and `maxsimd-metrics` with a UDP port. */
  const links = {
    MAXSIMD_SERVICE_HOST: '10.0.0.11',
    MAXSIMD_SERVICE_PORT: '8080',
    MAXSIMD_SERVICE_PORT_HTTP: '8080',
    MAXSIMD_PORT: 'tcp://10.0.0.11:8080',
    MAXSIMD_PORT_8080_TCP: 'tcp://10.0.0.11:8080',
    MAXSIMD_PORT_8080_TCP_PROTO: 'tcp',
    MAXSIMD_PORT_8080_TCP_PORT: '8080',
    MAXSIMD_PORT_8080_TCP_ADDR: '10.0.0.11',
    MAXSIMD_METRICS_SERVICE_HOST: '10.0.0.12',
    MAXSIMD_METRICS_PORT: 'udp://10.0.0.12:53',
    MAXSIMD_METRICS_PORT_53_UDP: 'udp://10.0.0.12:53',
    MAXSIMD_METRICS_PORT_53_UDP_ADDR: '10.0.0.12',
  };

  it('are ignored, each of them, and named', () => {
    expect(parseConfig({ ...links, MAXSIMD_HTTP_PORT: '9' })).toEqual(
      parseConfig({ MAXSIMD_HTTP_PORT: '9' }),
    );
    expect(serviceLinksIn({ ...links, MAXSIMD_HTTP_PORT: '9', OTHER_PORT: 'tcp://a' })).toEqual(
      Object.keys(links),
    );
  });

  it('are no names of settings', () => {
    const settings = Object.fromEntries(describeConfig().map((row) => [row.name, row.default]));
    expect(serviceLinksIn(settings)).toEqual([]);
  });
});
