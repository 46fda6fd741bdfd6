/** `maxsimd search`: its words. */
import type { Command } from 'commander';
import { CommandFailure } from '../failure.ts';
import type { ProgramEnvironment } from './environment.ts';
import {
  countFromZero,
  endpointFrom,
  names,
  nonBlank,
  positiveInteger,
  positiveNumber,
  withServiceOptions,
  type ServiceOptions,
} from './options.ts';

interface MatchOptions {
  readonly match: boolean;
  readonly matchFields?: readonly string[];
  readonly matchWeight?: number;
}

export function addSearch(program: Command, environment: ProgramEnvironment): void {
  withServiceOptions(
    program
      .command('search')
      .description('rank the chunks of an index for a query')
      .argument('<query>')
      .requiredOption('--index <index>', 'name or id of the index')
      .option('--top-k <n>', 'number of results', positiveInteger)
      .option('--offset <n>', 'leave out so many of the best: the next page', countFromZero)
      .option('--candidate-k <n>', 'number of chunks that are scored exactly', positiveInteger)
      .option('--filter <json>', 'metadata fields that must match, as a JSON object')
      .option('--where <json>', 'conditions on metadata fields, as a JSON object')
      .option('--by-document', 'rank documents by their best chunks')
      .option('--exact', 'score every chunk that matches')
      .option(
        '--min-score <share>',
        'leave out results with a lower normalized_score, 0 to 1',
        positiveNumber,
      )
      .option('--match-fields <names>', 'match_fields of the index that count (default: all)', names)
      .option('--match-weight <n>', 'weight of words that match a metadata value as a whole', positiveNumber)
      .option('--no-match', 'no metadata value matches')
      .option('--components', 'show the components of each score')
      .option('--passage <field>', 'show the passages, from the metadata field that holds the text', nonBlank)
      .option('--context <n>', 'characters before and after a passage (with --passage)', countFromZero)
      .option('--fields <names>', 'metadata fields to show, separated by commas (default: all)', names),
    30,
  ).action(
    async (
      query: string,
      options: ServiceOptions &
        MatchOptions & {
          index: string;
          topK?: number;
          offset?: number;
          candidateK?: number;
          filter?: string;
          where?: string;
          byDocument?: true;
          exact?: true;
          components?: true;
          minScore?: number;
          passage?: string;
          context?: number;
          fields?: readonly string[];
        },
    ) => {
      const { index, topK, offset, candidateK, filter, where, byDocument, exact, components } = options;
      const { minScore, passage: from, context, fields } = options;
      if (context !== undefined && from === undefined)
        throw new CommandFailure('usage_error', '--context needs --passage FIELD');
      const { parseObject, search } = await import('../search.ts');
      environment.report(
        await search(endpointFrom(options, environment), index, {
          query,
          ...(topK !== undefined && { top_k: topK }),
          ...(offset !== undefined && { offset }),
          ...(candidateK !== undefined && { candidate_k: candidateK }),
          ...(filter !== undefined && { filter: parseObject('--filter', filter) }),
          ...(where !== undefined && { where: parseObject('--where', where) }),
          ...(byDocument === true && { group_by_document: true }),
          ...(exact === true && { exact: true }),
          ...(components === true && { return_components: true }),
          ...(minScore !== undefined && { min_score: minScore }),
          ...matchIn(options),
          ...(from !== undefined && { passage: { from, ...(context !== undefined && { context }) } }),
          ...(fields !== undefined && { fields }),
        }),
      );
    },
  );
}

/** The field `match` of the request. */
function matchIn({ match, matchFields: fields, matchWeight: weight }: MatchOptions) {
  if (fields === undefined && weight === undefined) return match ? {} : { match: false as const };
  if (!match)
    throw new CommandFailure('usage_error', '--no-match takes no --match-fields and no --match-weight');
  return { match: { ...(fields !== undefined && { fields }), ...(weight !== undefined && { weight }) } };
}
