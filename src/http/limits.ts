/** Request limits of the contract (sections "Limits" and "Resources") and those decided where it is silent. */

/** Bytes of a JSON body. */
export const bodyBytesMax = 5 * 1024 * 1024;
/** Bytes of all large bodies that are being read, parsed or worked on: five tenants may have two of the largest each. */
export const largeBodiesBytesMax = 64 * 1024 * 1024;
/** UTF-8 bytes of one document's text. */
export const textBytesMax = 100 * 1024;
/** UTF-8 bytes of a query. */
export const queryBytesMax = 8 * 1024;
export const documentsMax = 50;
export const topKMax = 100;
/** Documents that one request deletes by their metadata. */
export const deletedMax = 1_000;
/** Searches of one request. */
export const queriesMax = 32;
/** Results of all of them together. */
export const queryResultsMax = 500;
/** Those of them that have components; a document's chunks count by themselves. */
export const queryComponentsMax = 100;
/** Unicode code points. */
export const docIdLengthMax = 255;
/** Unicode code points of an index name or a model name. */
export const nameLengthMax = 255;
/** UTF-8 bytes of metadata, a metadata schema or a filter, serialised without white space. */
export const metadataBytesMax = 16 * 1024;
/** Nested objects and arrays, the outermost one included. */
export const metadataDepthMax = 16;
export const filterFieldsMax = 16;
/** Documents or indexes of one page. */
export const pageItemsMax = 1_000;
/** Issues reported for one request; the rest would tell nothing new. */
export const issuesMax = 100;
/**
 * Characters of one path parameter as it stands in the URL: the longest legal `doc_id` is 255 code points of
 * 4 UTF-8 bytes, 3 characters each. Past it the answer is 414.
 */
export const pathParameterCharactersMax = docIdLengthMax * 4 * 3;
