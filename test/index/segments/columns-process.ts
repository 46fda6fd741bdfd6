/** Run by columns-killed.test.ts: compares the fields of an index, whose columns are written meanwhile, until it is killed or done. */
import { openHost, openStage } from '../../support/stages/index-stage.ts';

const [directory = '', tenantId = '', indexId = '', fields = ''] = process.argv.slice(2);
await using host = await openHost(directory);
await using stage = await openStage(host, { codesTokenVectorsMin: 1 }, { tenantId, indexId });
for (let field = 0; field < Number(fields); field += 1) await stage.matching(`{"f${field}":{"gte":0}}`);
