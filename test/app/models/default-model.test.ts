/** Which version new indexes get, by what this process and other nodes serve. */
import { expect, it } from 'vitest';
import { followDefaultModel, type ModelReference } from '../../../src/app/models/default-model.ts';
import { createLogger } from '../../../src/observation/logging.ts';

function logsInto() {
  const written: string[] = [];
  const logger = createLogger({ level: 'info', destination: { write: (line) => void written.push(line) } });
  const lines = (): unknown[] => written.map((line) => JSON.parse(line) as unknown);
  return { logger, lines };
}

const versions = (...numbers: string[]): readonly ModelReference[] => [
  { name: 'another', version: '99' },
  ...numbers.map((version) => ({ name: 'ours', version })),
];

it.each([
  ['alone, its newest, by number', versions('2', '10', '1'), [], '10'],
  ['beside a node that serves an older one, that one', versions('1', '2'), [versions('1')], '1'],
  ['the newest that all serve', versions('1', '2', '3'), [versions('1', '2'), versions('2', '4')], '2'],
  ['where none is served by all, its own newest', versions('2'), [versions('1')], '2'],
  ['while no encoder is up, none that is named', [], [versions('1')], undefined],
])('%s', (_what, own, others, wanted) => {
  const { logger } = logsInto();
  const model = followDefaultModel({
    choice: { name: 'ours' },
    own: () => own,
    others: () => others,
    installed: undefined,
    logger,
  });
  expect(model()).toEqual(wanted === undefined ? { name: 'ours' } : { name: 'ours', version: wanted });
});

it('a version of the configuration is taken as it is', () => {
  const { logger } = logsInto();
  const choice = { name: 'ours', version: '1' };
  const options = { own: () => versions('1', '2'), others: () => [], installed: '2', logger };
  expect(followDefaultModel({ choice, ...options })()).toEqual(choice);
});

it('the nodes agree on other models, too; a node that is alone leaves them to its encoders', () => {
  const { logger } = logsInto();
  let others: (readonly ModelReference[])[] = [];
  const model = followDefaultModel({
    choice: { name: 'ours', version: '1' },
    own: () => [...versions('1'), { name: 'another', version: '100' }],
    others: () => others,
    installed: '1',
    logger,
  });
  expect(model('another')).toEqual({ name: 'another' });
  others = [versions('1')];
  expect(model('another')).toEqual({ name: 'another', version: '99' });
  expect(model('unknown')).toEqual({ name: 'unknown' });
});

it('says once that the newest is not served by all, and when it is', () => {
  const { logger, lines } = logsInto();
  let others = [versions('1')];
  const model = followDefaultModel({
    choice: { name: 'ours' },
    own: () => versions('1', '2'),
    others: () => others,
    installed: '2',
    logger,
  });
  model();
  model();
  expect(lines()).toMatchObject([{ level: 'warn', model: 'ours', model_version: '1', installed: '2' }]);
  others = [versions('1', '2')];
  model();
  model();
  expect(lines()).toMatchObject([{ level: 'warn' }, { level: 'info', model_version: '2' }]);
});
