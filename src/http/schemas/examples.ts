/** Requests that the interactive page offers. A test sends them all, in this order. */

interface Example {
  readonly summary: string;
  readonly value: unknown;
}

const documents = [
  {
    doc_id: 'whale',
    text: 'The blue whale is the largest animal known to have existed.',
    metadata: { kind: 'mammal' },
  },
  {
    doc_id: 'bee',
    text: 'Honey bees dance to tell each other where flowers are.',
    metadata: { kind: 'insect' },
  },
];

const rerank = {
  plain: {
    summary: 'The better one of two documents, with its text',
    value: {
      model: 'default',
      query: 'largest animal',
      documents: documents.map(({ text }) => text),
      top_n: 1,
      return_documents: true,
    },
  },
};

export const requestExamples: Readonly<Record<string, Readonly<Record<string, Example>>>> = {
  createIndex: {
    plain: { summary: 'With defaults', value: { name: 'handbook' } },
    chunking: {
      summary: 'With smaller chunks and a description of the metadata',
      value: {
        name: 'handbook-in-small-chunks',
        metadata_schema: { kind: 'string' },
        chunking: { max_tokens: 128, overlap_tokens: 16, minimum_chunk_tokens: 8 },
      },
    },
    match: {
      summary: 'For documents with part numbers in their metadata',
      value: { name: 'parts', match_fields: ['part_number', 'maker.codes'] },
    },
  },
  updateIndex: {
    rename: { summary: 'Another name', value: { name: 'handbook-2' } },
    match: { summary: 'Match fields', value: { match_fields: ['part_number'] } },
  },
  updateDocument: {
    plain: { summary: 'Other metadata', value: { metadata: { kind: 'insect', checked: true } } },
    merge: {
      summary: 'One field more, one less',
      value: { metadata_merge: { checked: true, draft: null } },
    },
  },
  upsertDocuments: {
    plain: { summary: 'Two documents with metadata', value: { documents } },
  },
  deleteDocuments: {
    plain: { summary: 'Those of a kind', value: { where: { kind: { in: ['reptile'] } } } },
  },
  listMatchingDocuments: {
    plain: {
      summary: 'The first ten of a kind, with one field of their metadata',
      value: { where: { kind: { in: ['reptile'] } }, fields: ['kind'], limit: 10 },
    },
  },
  countValues: {
    plain: { summary: 'The most frequent kinds', value: { fields: ['kind'], limit: 20 } },
  },
  search: {
    plain: { summary: 'The best ten', value: { query: 'how do insects communicate?' } },
    filter: {
      summary: 'The best three of those whose metadata match, with component scores',
      value: {
        query: 'largest animal',
        top_k: 3,
        candidate_k: 100,
        filter: { kind: 'mammal' },
        return_components: true,
      },
    },
    conditions: {
      summary: 'Documents that meet conditions, each with its best chunks; every matching chunk is scored',
      value: {
        query: 'largest animal',
        where: { kind: { in: ['mammal', 'bird'] } },
        group_by_document: true,
        exact: true,
      },
    },
    page: {
      summary: 'The third page of ten',
      value: { query: 'how do insects communicate?', top_k: 10, offset: 20 },
    },
    passages: {
      summary: 'Passages of documents that keep their text in a metadata field, without their other metadata',
      value: { query: 'largest animal', passage: { from: 'body', context: 100 }, fields: [] },
    },
  },
  query: {
    plain: {
      summary: 'Two searches, one of which ranks documents that meet conditions',
      value: {
        queries: [
          { query: 'how do insects communicate?' },
          {
            query: 'largest animal',
            top_k: 3,
            where: { kind: { in: ['mammal', 'bird'] } },
            group_by_document: true,
          },
        ],
      },
    },
  },
  score: {
    plain: {
      summary: 'Two documents',
      value: { query: 'largest animal', documents: documents.map(({ doc_id, text }) => ({ doc_id, text })) },
    },
  },
  rerank,
  rerankV1: rerank,
  rerankUnversioned: rerank,
};
