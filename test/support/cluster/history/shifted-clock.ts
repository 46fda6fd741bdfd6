/** Shifts the clock of a node process by `TEST_CLOCK_OFFSET_MS`. The process imports this file before all others. */
const offsetMs = Number(process.env['TEST_CLOCK_OFFSET_MS'] ?? '0');
const RealDate = Date;

globalThis.Date = class extends RealDate {
  constructor(...given: readonly unknown[]) {
    super(...((given.length === 0 ? [RealDate.now() + offsetMs] : given) as [number]));
  }

  static override now(): number {
    return RealDate.now() + offsetMs;
  }
} as DateConstructor;
