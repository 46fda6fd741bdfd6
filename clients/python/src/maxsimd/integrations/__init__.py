"""Parts for LangChain, LlamaIndex and Haystack, each in a module of its own with an extra of the package.

The service keeps no text. A retriever gets it from the caller's `load(doc_ids)`, which gives the texts that it has by
`doc_id`; a document without a text is left out.
"""
