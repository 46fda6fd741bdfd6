/**
 * From a line of the input to the JSON text of a document input. What the service would refuse for sure
 * is refused here, with its line number, without spending a request on it.
 */
import { documentText, identifierOf } from '../beir/directory.ts';
import { isObject } from '../json.ts';
import { parseLine, type Line } from '../jsonl.ts';

export interface InputDocument {
  readonly line: number;
  readonly docId: string;
  /** JSON text of `{doc_id, text, metadata?}`. */
  readonly json: string;
  readonly jsonBytes: number;
}

export interface DocumentProblem {
  readonly line: number;
  readonly docId: string | undefined;
  /** Names what is wrong; never quotes the document. */
  readonly error: string;
}

const textBytesMax = 100 * 1024;
const docIdLengthMax = 255;

export function parseDocument(line: Line): InputDocument | DocumentProblem {
  const parsed = parseLine(line);
  if ('problem' in parsed) return { line: line.number, docId: undefined, error: parsed.problem };
  const { object } = parsed;
  const docId = identifierOf(object);
  const problem = (error: string): DocumentProblem => ({ line: line.number, docId, error });
  if (docId === undefined) return problem('no doc_id, _id or id');
  const docIdLength = Array.from(docId).length;
  if (docIdLength < 1 || docIdLength > docIdLengthMax) {
    return problem(`the identifier has ${docIdLength} characters, 1 to ${docIdLengthMax} are allowed`);
  }
  const title = object['title'] ?? '';
  const text = object['text'] ?? '';
  if (typeof text !== 'string' || typeof title !== 'string') return problem('title and text must be strings');
  const fullText = documentText(title, text);
  if (fullText === '') return problem('the text is empty');
  const textBytes = Buffer.byteLength(fullText);
  if (textBytes > textBytesMax)
    return problem(`the text has ${textBytes} bytes, ${textBytesMax} are allowed`);
  const metadata = object['metadata'] ?? {};
  if (!isObject(metadata)) return problem('metadata must be an object');
  const json = JSON.stringify({ doc_id: docId, text: fullText, metadata });
  return { line: line.number, docId, json, jsonBytes: Buffer.byteLength(json) };
}

export function isProblem(item: InputDocument | DocumentProblem): item is DocumentProblem {
  return 'error' in item;
}
