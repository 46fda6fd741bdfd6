/** The time of an answer as one bar, and stage by stage. */
import type { Answer } from '../api.ts';
import { milliseconds } from '../format.ts';

const names: Readonly<Record<string, string>> = {
  admission: 'check the key and limits',
  body: 'read the request',
  index: 'find the index',
  encode: 'encode the query',
  engine: 'find and score chunks',
  resolve: 'read metadata',
  usage: 'note the usage',
  answer: 'write the answer',
};
/** Stages that follow one another. All others are parts of `service`. */
const outer = new Set(['admission', 'body', 'service', 'answer']);
const tones = 4;

interface Shown {
  readonly name: string;
  readonly ms: number;
  readonly parts: readonly { readonly name: string; readonly ms: number }[];
}

export function Stages({ of: answer }: { of: Answer<unknown> }) {
  const shown = stagesOf(answer);
  const total = Math.max(answer.milliseconds, 0.001);
  return (
    <div class="stages stacked">
      <div class="track" aria-hidden="true">
        {shown.map(({ name, ms }, at) => (
          <span key={name} class={toneOf(at)} style={{ width: `${(100 * ms) / total}%` }} />
        ))}
      </div>
      <details>
        <summary>{milliseconds(answer.milliseconds)} in all, by stage</summary>
        <ul>
          {shown.flatMap(({ name, ms, parts }, at) => [
            <li key={name}>
              <span class={`swatch ${toneOf(at)}`} aria-hidden="true" />
              <span>{name}</span>
              <span class="number">{milliseconds(ms)}</span>
            </li>,
            ...parts.map((part) => (
              <li key={part.name} class="part">
                <span />
                <span>{part.name}</span>
                <span class="number">{milliseconds(part.ms)}</span>
              </li>
            )),
          ])}
        </ul>
      </details>
    </div>
  );
}

/** The network comes first; then the stages of the service, in place of the service as a whole. */
function stagesOf({ stages, milliseconds: total }: Answer<unknown>): readonly Shown[] {
  const msOf = (wanted: string): number => stages.find(({ name }) => name === wanted)?.milliseconds ?? 0;
  const inner = stages.filter(({ name }) => !outer.has(name) && !name.includes('_'));
  const partsOf = (name: string) =>
    stages
      .filter(
        (part) => part.name.startsWith(`${name}_`) || (name === 'encode' && part.name.startsWith('encoder_')),
      )
      .map((part) => ({ name: part.name.replace(/^\w+?_/, '').replaceAll('_', ' '), ms: part.milliseconds }));
  const shown = ({ name, milliseconds: ms }: (typeof stages)[number]): Shown => ({
    name: names[name] ?? name,
    ms,
    parts: partsOf(name),
  });
  const sum = (of: readonly { readonly milliseconds: number }[]): number =>
    of.reduce((whole, stage) => whole + stage.milliseconds, 0);
  const inService = sum(stages.filter(({ name }) => outer.has(name)));
  return [
    { name: 'network and browser', ms: Math.max(0, total - inService), parts: [] },
    ...stages.filter(({ name }) => name === 'admission' || name === 'body').map(shown),
    ...inner.map(shown),
    { name: 'the rest of the service', ms: Math.max(0, msOf('service') - sum(inner)), parts: [] },
    ...stages.filter(({ name }) => name === 'answer').map(shown),
  ];
}

/** The network is grey. The stages take turns in shades of the accent. */
function toneOf(at: number): string {
  return `tone-${at === 0 ? 0 : 1 + ((at - 1) % tones)}`;
}
