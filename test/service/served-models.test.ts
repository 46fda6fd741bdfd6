/** Which model a new index gets while encoders come and go: two real ones, each with a model of its own. */
import { expect, it, onTestFinished } from 'vitest';
import { createEncoderPool } from '../../src/encoder/client/pool.ts';
import { chooseModel } from '../../src/service/indexes/served-models.ts';
import { spawnEncoders } from '../support/encoder/encoders.ts';
import { eventually } from '../support/running/eventually.ts';
import { defaultModel } from '../support/encoder/models.ts';

it('a model whose only encoder is out is unavailable; one that was never served does not exist', async () => {
  const [tiny, usual] = [await spawnEncoders(), await spawnEncoders({ modelDirectories: [defaultModel] })];
  onTestFinished(async () => usual.supervisor.close());
  const pool = createEncoderPool({
    addresses: [...tiny.supervisor.addresses, ...usual.supervisor.addresses],
    healWaitMs: 100,
  });
  onTestFinished(async () => pool.close());
  const choose = async (model: string) => {
    const limits = { deadlineMs: Date.now() + 10_000, signal: new AbortController().signal };
    return chooseModel(pool, (name = 'minilm-l6-maxsim') => ({ name }), { model }, limits);
  };
  await eventually(() => pool.models().length === 2);
  await expect(choose('colbert-tiny')).resolves.toMatchObject({ name: 'colbert-tiny' });

  await tiny.supervisor.close();
  await eventually(() => pool.models().length === 1);
  await expect(choose('colbert-tiny')).rejects.toMatchObject({
    code: 'service_unavailable',
    retryAfterSeconds: 5,
  });
  await expect(choose('colbert-huge')).rejects.toMatchObject({ code: 'validation_error' });
});
