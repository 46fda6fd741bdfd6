/** Request limits: those of the contract (sections "Limits" and "Resources"), and ours where it has none. */

export const bodyBytesMax = 5 * 1024 * 1024;
/** Bytes of all large bodies that are read, parsed or worked on. Five tenants may have two of the largest each. */
export const largeBodiesBytesMax = 64 * 1024 * 1024;
export const textBytesMax = 100 * 1024;
export const queryBytesMax = 8 * 1024;
export const documentsMax = 50;
/** Documents of a re-rank request. */
export const rerankedDocumentsMax = 1_000;
export const topKMax = 100;
/** Results that are left out before those. */
export const offsetMax = 900;
export const deletedMax = 1_000;
export const queriesMax = 32;
/** Results of all searches of one request together. */
export const queryResultsMax = 500;
/** Results with components; each chunk of a document counts. */
export const queryComponentsMax = 100;
/** Chunks with passages, of all searches of one request together. */
export const queryPassagesMax = 1_000;
/** Unicode code points before and after a chunk. */
export const passageContextMax = 1_000;
/** Unicode code points. */
export const docIdLengthMax = 255;
/** Unicode code points of an index name or a model name. */
export const nameLengthMax = 255;
/** Nested objects and arrays, the outermost one included. */
export const metadataDepthMax = 16;
export const filterFieldsMax = 16;
/** Fields that a request names. */
export const fieldNamesMax = 10;
/** Match fields of an index. */
export const matchFieldsMax = 8;
/** Values of one field. */
export const facetValuesMax = 100;
export const pageItemsMax = 1_000;
export const issuesMax = 100;
/** In an address, the name of an index stands behind it. */
export const indexNamePrefix = 'name:';
/**
 * Characters of one path parameter in the URL. The longest legal name of an index has 255 code points of 4 UTF-8 bytes, with 3
 * characters for each byte, as the prefix may have. Above that the answer is 414.
 */
export const pathParameterCharactersMax = (indexNamePrefix.length + nameLengthMax * 4) * 3;
