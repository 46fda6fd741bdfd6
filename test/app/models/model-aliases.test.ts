/** Names that re-rank requests may use for a model. */
import { describe, expect, it } from 'vitest';
import { parseConfig } from '../../../src/app/config.ts';
import { aliasesOf, choiceOf } from '../../../src/app/models/model-choice.ts';
import { modelOfRerank } from '../../../src/service/indexes/served-models.ts';
import { WordEncoder } from '../../support/encoder/word-encoder.ts';

const configOf = (models: string) => parseConfig({ MAXSIMD_MODEL: models });

describe('aliases of models', () => {
  it('come behind the default model in its variable', () => {
    const config = configOf('words, rerank-v3.5=default,small=words');
    expect(choiceOf(config)).toEqual({ name: 'words' });
    expect([...aliasesOf(config)]).toEqual([
      ['rerank-v3.5', 'default'],
      ['small', 'words'],
    ]);
  });

  it.each(['a=b', 'words,alias', 'words,=default', 'words,alias=', 'words,alias=other/2', 'words,a=b=c'])(
    'are refused as %s',
    (models) => {
      expect(() => configOf(models)).toThrow(
        'MAXSIMD_MODEL must be a model, and after commas perhaps aliases',
      );
    },
  );

  it('stand for their models, and an unknown name is told those that stand for a served one', async () => {
    const encoders = new WordEncoder();
    const modelAliases = aliasesOf(configOf('words,rerank-v3.5=default,small=words,old=gone'));
    const modelOf = (name?: string) =>
      modelOfRerank({ encoders, modelOfMoment: (given = 'words') => ({ name: given }), modelAliases }, name, {
        deadlineMs: Date.now() + 1_000,
        signal: new AbortController().signal,
      });
    for (const name of [undefined, 'default', 'words', 'rerank-v3.5', 'small'])
      expect(await modelOf(name)).toMatchObject({ name: 'words' });
    for (const name of ['old', 'rerank-v4'])
      await expect(modelOf(name)).rejects.toMatchObject({
        code: 'validation_error',
        message: expect.stringContaining('the names are default, words, rerank-v3.5, small') as string,
      });
  });
});
