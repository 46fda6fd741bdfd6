/**
 * Configurations of published models (`test/fixtures/published-models`): what `models add` reads of each, and the rules of
 * encoding that follow. Their tokenizers are some megabytes, so they are stood in for: that of BERT is in this
 * repository, and one of ModernBERT's form is made here, with the ids of its special tokens and of PyLate's prefixes.
 */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { readModelSource } from '../../../src/cli/models/model-source.ts';
import { loadModel, type ServedModel } from '../../../src/encoder/model/served-model.ts';
import { newDirectory } from '../../support/machine/temporary-directory.ts';

const root = path.resolve(import.meta.dirname, '../../..');
const published = path.join(root, 'test/fixtures/published-models');
const bertTokenizer = readFileSync(path.join(root, 'models/minilm-l6-maxsim/1/tokenizer.json'), 'utf8');
const punctuation = '!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~'.split('');

/** The model as it is served after `models add`, whose graph is not looked at here. */
async function served(name: string, tokenizer: string): Promise<ServedModel> {
  const source = path.join(await newDirectory(), 'export');
  mkdirSync(source);
  copyFileSync(path.join(published, name, 'onnx_config.json'), path.join(source, 'onnx_config.json'));
  // An empty graph.
  writeFileSync(path.join(source, 'model.onnx'), '');
  writeFileSync(path.join(source, 'tokenizer.json'), tokenizer);
  const { config, files, notes } = await readModelSource(source);
  expect(notes).toEqual([]);
  expect(files.map(({ to }) => to)).toEqual(['model.onnx', 'tokenizer.json']);
  const directory = path.join(await newDirectory(), name, '1');
  mkdirSync(directory, { recursive: true });
  for (const { from, to } of files) copyFileSync(path.join(source, from), path.join(directory, to));
  writeFileSync(path.join(directory, 'onnx_config.json'), JSON.stringify(config));
  return loadModel(directory);
}

/** Byte-level BPE, a character a token, where the ids of ModernBERT are special. */
function modernBertTokenizer(): string {
  const letters = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'.split('');
  const characters = [...punctuation, ...letters, 'Ġ'];
  const special = { '[UNK]': 50280, '[CLS]': 50281, '[SEP]': 50282, '[PAD]': 50283, '[MASK]': 50284 };
  const added = [
    ...Object.entries(special).map(([content, id]) => ({ content, id, special: true, normalized: false })),
    { content: '[Q] ', id: 50368, special: false, normalized: true },
    { content: '[D] ', id: 50369, special: false, normalized: true },
  ].map((token) => ({ single_word: false, lstrip: false, rstrip: false, ...token }));
  const piece = (token: string): object => ({ SpecialToken: { id: token, type_id: 0 } });
  const text = { Sequence: { id: 'A', type_id: 0 } };
  return JSON.stringify({
    version: '1.0',
    added_tokens: added,
    normalizer: { type: 'NFC' },
    pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true },
    post_processor: {
      type: 'TemplateProcessing',
      single: [piece('[CLS]'), text, piece('[SEP]')],
      pair: [piece('[CLS]'), text, piece('[SEP]'), { Sequence: { id: 'B', type_id: 1 } }, piece('[SEP]')],
      special_tokens: Object.fromEntries(
        (['[CLS]', '[SEP]'] as const).map((id) => [id, { id, ids: [special[id]], tokens: [id] }]),
      ),
    },
    decoder: { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: {
      type: 'BPE',
      vocab: { ...Object.fromEntries(characters.map((character, id) => [character, id])), ...special },
      merges: [],
    },
  });
}

const bert = { head: [101], tail: [102], tokenizer: bertTokenizer };
const modernBert = { head: [50281], tail: [50282], tokenizer: modernBertTokenizer() };

it.each([
  {
    name: 'lateon',
    ...modernBert,
    dim: 128,
    prefixes: [50368, 50369],
    lengths: [32, 300],
    expansion: undefined,
    lowers: false,
    padId: 50284,
    types: false,
  },
  {
    name: 'mxbai-edge-colbert-v0-32m',
    ...modernBert,
    dim: 64,
    prefixes: [50368, 50369],
    lengths: [48, 512],
    expansion: undefined,
    lowers: true,
    padId: 50284,
    types: false,
  },
  {
    name: 'answerai-colbert-small-v1',
    ...bert,
    dim: 96,
    prefixes: [1, 2],
    lengths: [32, 300],
    expansion: { maskId: 103, attended: false, positions: 32 },
    // The configuration does not say so, but the tokenizer does.
    lowers: true,
    padId: 103,
    types: true,
  },
])('$name: prefixes, lengths, dimension, expansion, skip-list and case', async (model) => {
  const { dim, rules, session, tokenizer, windowTokensMax } = await served(model.name, model.tokenizer);
  expect(dim).toBe(model.dim);
  expect(rules.queryHead).toEqual([...model.head, model.prefixes[0]]);
  expect(rules.documentHead).toEqual([...model.head, model.prefixes[1]]);
  expect(rules.tail).toEqual(model.tail);
  expect([rules.queryPositionsMax, rules.documentPositionsMax]).toEqual(model.lengths);
  expect(windowTokensMax).toBe(model.lengths[1]! - 3);
  expect(rules.expansion).toEqual(model.expansion);
  expect(rules.skipIds).toEqual(new Set(punctuation.map((mark) => tokenizer.idOf(mark))));
  expect(rules.skipIds.size).toBe(32);
  expect(session).toMatchObject({ padId: model.padId, usesTokenTypeIds: model.types });
  const [upper, lower] = ['Blue WHALE', 'blue whale'].map((text) => [...tokenizer.encode(text)]);
  if (model.lowers) expect(upper).toEqual(lower);
  else expect(upper).not.toEqual(lower);
  // A prefix that a user writes is ordinary text.
  for (const prefix of ['[Q] ', '[unused0]'])
    expect([...tokenizer.encode(`${prefix}blue`)]).not.toContain(model.prefixes[0]);
});
