const counts = new Intl.NumberFormat('en');
const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

export function count(value: number | bigint): string {
  return counts.format(value);
}

/** `1 document`, `2 documents`. */
export function many(value: number | bigint, thing: string, things = `${thing}s`): string {
  return `${count(value)} ${value === 1 || value === 1n ? thing : things}`;
}

export function bytes(value: number): string {
  const power = value < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(value) / 10));
  const scaled = value / 1024 ** power;
  return `${scaled.toFixed(power === 0 || scaled >= 100 ? 0 : 1)} ${units[power]}`;
}

export function milliseconds(value: number): string {
  return `${value.toFixed(value < 10 ? 1 : 0)} ms`;
}

export function day(timestamp: string): string {
  return timestamp.slice(0, 10);
}

export function minute(timestamp: string): string {
  return timestamp.slice(0, 16).replace('T', ' ');
}

/** A value of metadata, for people. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return value;
  const isPlain = Array.isArray(value) && value.every((one) => typeof one !== 'object');
  return isPlain ? value.join(', ') : JSON.stringify(value);
}

const dayMs = 86_400_000;

export function daysAgo(days: number): string {
  return day(new Date(Date.now() - days * dayMs).toISOString());
}

/** The days from `from` to today, in UTC. */
export function daysSince(from: string): readonly string[] {
  const days = Math.floor((Date.now() - Date.parse(from)) / dayMs) + 1;
  return Array.from({ length: days }, (_, place) => daysAgo(days - 1 - place));
}

/** As one word of a shell's command. */
export function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Hours and minutes by the clock of the person. */
export function timeOfDay(ms: number): string {
  return new Date(ms).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });
}
