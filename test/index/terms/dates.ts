/** Generated texts of dates, with the instants that they mean, for every reader of dates. */
import * as fc from 'fast-check';

/** `instant`: nanoseconds since the epoch; `undefined` if the text is no date. */
export interface WrittenDate {
  readonly text: string;
  readonly instant: bigint | undefined;
}

const two = (number: number): string => String(number).padStart(2, '0');
const between = (min: number, max: number): fc.Arbitrary<number> => fc.integer({ min, max });
const rarely = <T>(one: fc.Arbitrary<T>) => fc.option(one, { freq: 2 });

const day = fc
  .oneof(
    between(Date.UTC(2026, 10, 26), Date.UTC(2026, 10, 29)),
    between(Date.parse('0000-01-01'), Date.parse('9999-12-31')),
  )
  .map((ms) => new Date(ms).toISOString().slice(0, 10));
const time = fc
  .tuple(
    between(0, 23),
    between(0, 59),
    rarely(fc.tuple(between(0, 59), rarely(fc.stringMatching(/^[0-9]{1,12}$/)))),
  )
  .chain(([hour, minute, rest]) =>
    fc.record({
      mark: fc.constantFrom('T', 't', ' '),
      point: fc.constantFrom('.', ','),
      hour: fc.constant(hour),
      minute: fc.constant(minute),
      second: fc.constant(rest?.[0]),
      fraction: fc.constant(rest?.[1] ?? undefined),
    }),
  );
const offset = fc
  .tuple(
    between(0, 23),
    between(0, 59),
    fc.constantFrom(1, -1),
    fc.constantFrom('hours', 'digits', 'colon'),
    fc.boolean(),
  )
  .map(([hour, minute, sign, form, spaced]) => {
    const minutes = { hours: '', digits: two(minute), colon: `:${two(minute)}` }[form];
    const seconds = sign * (hour * 3_600 + (form === 'hours' ? 0 : minute * 60));
    return { text: `${spaced ? ' ' : ''}${sign < 0 ? '-' : '+'}${two(hour)}${minutes}`, seconds };
  });
const zone = fc.oneof(
  fc.constantFrom('', 'Z', 'z', ' Z', 'UTC', ' UTC').map((text) => ({ text, seconds: 0 })),
  { arbitrary: offset, weight: 2 },
);

/** A leap second ends a day of UTC, wherever it is written. */
const leapSecond = fc.tuple(day, between(0, 23)).map(([date, hour]) => ({
  text: `${date} ${two(hour)}:59:60${hour === 23 ? '' : `-${two(23 - hour)}`}`,
  instant: BigInt(Date.parse(`${date}T00:00:00Z`) / 1_000 + 86_400) * 1_000_000_000n,
}));

const valid: fc.Arbitrary<WrittenDate> = fc.oneof(
  day.map((text) => ({ text, instant: BigInt(Date.parse(`${text}T00:00:00Z`)) * 1_000_000n })),
  {
    arbitrary: fc
      .tuple(day, time, zone)
      .map(([date, { mark, point, hour, minute, second, fraction }, { text, seconds }]) => {
        const rest =
          second === undefined ? '' : `:${two(second)}${fraction === undefined ? '' : `${point}${fraction}`}`;
        const whole =
          Date.parse(`${date}T00:00:00Z`) / 1_000 + hour * 3_600 + minute * 60 + (second ?? 0) - seconds;
        return {
          text: `${date}${mark}${two(hour)}:${two(minute)}${rest}${text}`,
          instant: BigInt(whole) * 1_000_000_000n + BigInt((fraction ?? '').slice(0, 9).padEnd(9, '0')),
        };
      }),
    weight: 12,
  },
  leapSecond,
);

const noDates = [
  '',
  'yesterday',
  '20261127',
  '2026-11',
  '2026-11-31',
  '2025-02-29',
  '2026-13-01',
  '2026-00-10',
  '2026-11-27Z',
  '2026-11-27 Z',
  '2026-11-27T',
  '2026-11-27 ',
  ' 2026-11-27',
  '2026-11-27T09',
  '2026-11-27T9:30',
  '2026-11-27T24:00:00Z',
  '2026-11-27T09:60',
  '2026-11-27T09:30:61Z',
  '2026-11-27T09:30:60Z',
  '2026-11-27T09:30:00.Z',
  '2026-11-27T09:30.5Z',
  '2026-11-27T09:30:00Zz',
  '2026-11-27T09:30:00 ',
  '2026-11-27T09:30:00  Z',
  '2026-11-27T09:30:00+',
  '2026-11-27T09:30:00+1',
  '2026-11-27T09:30:00+01:',
  '2026-11-27T09:30:00+010',
  '2026-11-27T09:30:00+24:00',
  '2026-11-27T09:30:00+01:60',
  '2026-11-27T09:30:00 utc',
  '2026-11-27T09:30:00 PM',
  '2026-11-27\t09:30:00',
  '2026-11-27T09:30:00+01:00[Europe/Berlin]',
  '2026/11/27 09:30:00',
  '27.11.2026',
  '+2026-11-27T09:30:00Z',
  '٢٠٢٦-11-27',
];

export const writtenDates: fc.Arbitrary<WrittenDate> = fc.oneof(
  { arbitrary: valid, weight: 4 },
  fc.constantFrom(...noDates).map((text) => ({ text, instant: undefined })),
);

/** The text of a date with one character changed, added or removed: a date or not. */
export const nearlyDates: fc.Arbitrary<string> = fc
  .tuple(valid, fc.nat(), fc.constantFrom('', '0', '9', ':', '-', '+', ' ', 'T', 'Z', '.', 'é'), fc.boolean())
  .map(([{ text }, place, added, replaces]) => {
    const at = place % text.length;
    return `${text.slice(0, at)}${added}${text.slice(at + (replaces ? 1 : 0))}`;
  });
