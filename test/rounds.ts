/** How often a test of chance is repeated: a few times in `npm test`, for hours in `npm run test:nightly`. */
export function rounds(count: { readonly short: number; readonly nightly: number }): number {
  return process.env['TEST_NIGHTLY'] === '1' ? count.nightly : count.short;
}
