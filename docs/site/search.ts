/** How the site's search ranks what it finds; its test ranks by the same options. */
export const searchOptions = {
  fuzzy: 0.2,
  prefix: true,
  boost: { title: 4, titles: 2, text: 1 },
  // Guides before references, and both before all else. The page gets this function as text: it refers to nothing outside.
  boostDocument: (address: string) =>
    address.startsWith('/docs/guide/') ? 3 : address.startsWith('/docs/reference/') ? 2 : 1,
};
