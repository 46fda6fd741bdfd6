/** Certificates for a test: an authority, and the certificates that it signs for 127.0.0.1. */
import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';

export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

export interface Authority extends Certificate {
  /** `host`: the address that the certificate is for. */
  sign(name: string, host?: string): Promise<Certificate>;
}

const run = promisify(execFile);

export async function makeAuthority(directory: string, name: string): Promise<Authority> {
  const make = async (subject: string, more: readonly string[]): Promise<Certificate> => {
    const at = (ending: string): string => path.join(directory, `${subject}.${ending}`);
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', at('key')];
    const args = [
      'req',
      '-x509',
      ...key,
      '-out',
      at('pem'),
      '-days',
      '2',
      '-subj',
      `/CN=${subject}`,
      ...more,
    ];
    await run('openssl', args);
    return { cert: at('pem'), key: at('key') };
  };
  const authority = await make(name, []);
  const signed = [
    '-CA',
    authority.cert,
    '-CAkey',
    authority.key,
    '-addext',
    'basicConstraints=critical,CA:FALSE',
  ];
  return {
    ...authority,
    sign: (subject, host = '127.0.0.1') => make(subject, [...signed, '-addext', `subjectAltName=IP:${host}`]),
  };
}
