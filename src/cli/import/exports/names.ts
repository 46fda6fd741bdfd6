/** Words of `--from`. */
export const exportNames = [
  'langchain',
  'llamaindex',
  'haystack',
  'chroma',
  'weaviate',
  'milvus',
  'qdrant',
  'elasticdump',
] as const;
export type ExportName = (typeof exportNames)[number];
