import { describe, expect, it } from 'vitest';
import { ArgumentError, parseEncoderArguments } from '../../../src/encoder/server/arguments.ts';

const parse = (listen: string, ...others: string[]) =>
  parseEncoderArguments(['--listen', listen, '--model-dir', 'x', ...others]);
const tls = ['--tls-cert', 'c', '--tls-key', 'k'];

describe('an encoder', () => {
  it.each(['unix:/run/x.sock', '127.0.0.1:0', 'localhost:50051', '[::1]:50051'])(
    'listens on %s without TLS',
    (address) => {
      expect(parse(address).listen).toBe(address);
    },
  );

  it.each([
    '0.0.0.0:0',
    '[::]:50051',
    '10.0.0.1:50051',
    'encoder.example:50051',
    '127.0.0.1.example:1',
    '::1',
  ])('listens on %s with TLS, or without where that is allowed in so many words', (address) => {
    expect(() => parse(address)).toThrow('--allow-plain');
    expect(parse(address, ...tls).listen).toBe(address);
    expect(parse(address, '--allow-plain').listen).toBe(address);
  });

  it('takes half of what TLS needs for a mistake', () => {
    for (const given of [
      ['--tls-cert', 'c'],
      ['--tls-key', 'k'],
      ['--tls-client-ca', 'a'],
    ]) {
      expect(() => parse('unix:/x', ...given)).toThrow('--tls-key');
    }
    expect(parse('unix:/x', ...tls, '--tls-client-ca', 'a')['tls-client-ca']).toBe('a');
  });

  it.each([
    [['--threads', 'abc'], '--threads must be a whole number from 0 to 1024, got "abc"'],
    [['--provider', 'tpu'], '--provider must be auto, cpu or cuda, got "tpu"'],
    [['--thread', '4'], '--thread is not an option (did you mean --threads?)'],
    [['--threads'], '--threads needs a value'],
    [['--threads', '--allow-plain'], '--threads needs a value'],
    [['--allow-plain=1'], '--allow-plain takes no value'],
    [['other'], 'other is not an option'],
  ])('says what is wrong with %j', (given, words) => {
    expect(() => parse('unix:/x', ...given)).toThrow(new ArgumentError(words));
  });

  it('says what is missing', () => {
    expect(() => parseEncoderArguments([])).toThrow(
      new ArgumentError('--listen is required; --model-dir is required'),
    );
  });
});
