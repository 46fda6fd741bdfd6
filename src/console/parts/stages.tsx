/** The time of each stage of an answer. Stages within another one are indented below it. */
import type { Answer } from '../api.ts';
import { milliseconds } from '../format.ts';

/** Stages that follow one another. All others are parts of `service`. */
const sequence = new Set(['admission', 'body', 'service', 'answer']);

export function Stages({ of: answer }: { of: Pick<Answer<unknown>, 'stages' | 'milliseconds'> }) {
  const outer = answer.stages.filter(({ name }) => sequence.has(name));
  const parts = answer.stages.filter(({ name }) => !sequence.has(name));
  const longest = Math.max(answer.milliseconds, 0.001);
  const row = ({ name, milliseconds: time }: Answer<unknown>['stages'][number], part: boolean) => (
    <tr key={name} class={part ? 'part' : undefined}>
      <th scope="row">{name.replaceAll('_', ' ')}</th>
      <td class="number">{milliseconds(time)}</td>
      <td class="bar" aria-hidden="true">
        <span style={{ width: `${Math.min(100, (100 * time) / longest)}%` }} />
      </td>
    </tr>
  );
  return (
    <details class="stages">
      <summary>
        {milliseconds(answer.milliseconds)} here,{' '}
        {milliseconds(outer.reduce((sum, stage) => sum + stage.milliseconds, 0))} in the service
      </summary>
      <table>
        <tbody>
          {outer.flatMap((stage) => [
            row(stage, false),
            ...(stage.name === 'service' ? parts.map((part) => row(part, true)) : []),
          ])}
        </tbody>
      </table>
    </details>
  );
}
