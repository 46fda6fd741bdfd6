/**
 * How often a test of chance is repeated: a few times in `npm test`, for hours in `npm run test:nightly`, which sets
 * `TEST_NIGHTLY=1`.
 */
export function rounds(count: { readonly short: number; readonly nightly: number }): number {
  return process.env['TEST_NIGHTLY'] === '1' ? count.nightly : count.short;
}

/** Whether a run is one of the night, in which the tests of test/nightly run. `TEST_NIGHTLY=short` runs them for seconds, to see that they still work. */
export function isNightly(): boolean {
  return process.env['TEST_NIGHTLY'] !== undefined;
}
