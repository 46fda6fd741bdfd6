/**
 * Makes a self-signed certificate for 127.0.0.1 or a name, and sends a request that trusts it. Node makes keys and signatures but
 * no certificates, so the few DER structures of RFC 5280 are written here.
 */
import { generateKeyPairSync, sign } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import type { IncomingHttpHeaders } from 'node:http';
import { request } from 'node:https';
import path from 'node:path';

export interface Certificate {
  readonly certificateFile: string;
  readonly keyFile: string;
  /** PEM. */
  readonly certificate: string;
}

const sequence = 0x30;
const integerTag = 0x02;
const bitString = 0x03;
const octetString = 0x04;
const objectIdentifier = 0x06;
const utf8String = 0x0c;
const set = 0x31;
const utcTime = 0x17;

/** Makes one for 127.0.0.1, or for `name`. */
export async function makeCertificate(directory: string, name?: string): Promise<Certificate> {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const ecdsaWithSha256 = der(sequence, der(objectIdentifier, Buffer.from('2a8648ce3d040302', 'hex')));
  const commonName = der(
    sequence,
    der(
      set,
      der(
        sequence,
        der(objectIdentifier, Buffer.from('550403', 'hex')),
        der(utf8String, Buffer.from('maxsimd test')),
      ),
    ),
  );
  const hour = 3_600_000;
  const validity = der(sequence, moment(Date.now() - hour), moment(Date.now() + 24 * hour));
  // subjectAltName (2.5.29.17): iPAddress or dNSName.
  const subject = name === undefined ? der(0x87, Buffer.from([127, 0, 0, 1])) : der(0x82, Buffer.from(name));
  const alternativeName = der(
    sequence,
    der(objectIdentifier, Buffer.from('551d11', 'hex')),
    der(octetString, der(sequence, subject)),
  );
  const body = der(
    sequence,
    der(0xa0, der(integerTag, Buffer.from([2]))),
    der(integerTag, Buffer.from([1])),
    ecdsaWithSha256,
    commonName,
    validity,
    commonName,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, der(sequence, alternativeName)),
  );
  const signature = sign('sha256', body, privateKey);
  const whole = der(sequence, body, ecdsaWithSha256, der(bitString, Buffer.from([0]), signature));
  const base64 = whole.toString('base64').match(/.{1,64}/g) ?? [];
  const certificate = `-----BEGIN CERTIFICATE-----\n${base64.join('\n')}\n-----END CERTIFICATE-----\n`;
  const certificateFile = path.join(directory, 'certificate.pem');
  const keyFile = path.join(directory, 'key.pem');
  await writeFile(certificateFile, certificate);
  await writeFile(keyFile, privateKey.export({ type: 'pkcs8', format: 'pem' }));
  return { certificateFile, keyFile, certificate };
}

/** A DER value: tag, length, content. */
function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const length = content.length;
  const head =
    length < 0x80
      ? [length]
      : length < 0x100
        ? [0x81, length]
        : [0x82, Math.floor(length / 256), length % 256];
  return Buffer.concat([Buffer.from([tag, ...head]), content]);
}

function moment(milliseconds: number): Buffer {
  const digits = new Date(milliseconds).toISOString().replaceAll(/[-:T]|\.\d+/g, '');
  return der(utcTime, Buffer.from(digits.slice(2)));
}

export interface TlsReply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** GET with a bearer key, trusting exactly `certificate`. */
export async function requestOverTls(url: string, certificate: string, key: string): Promise<TlsReply> {
  const { promise, resolve, reject } = Promise.withResolvers<TlsReply>();
  const outgoing = request(
    url,
    { ca: certificate, headers: { authorization: `Bearer ${key}` } },
    (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text: string) => {
        body += text;
      });
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
      );
    },
  );
  outgoing.on('error', reject).end();
  return promise;
}
