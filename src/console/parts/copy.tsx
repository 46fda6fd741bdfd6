/** Copies a text. Browsers have a clipboard over HTTPS and on this machine only. */
import { useWork } from '../work.ts';
import { Failure } from './failure.tsx';

export function Copy({ text }: { text: string }) {
  const copy = useWork(async () => {
    await navigator.clipboard.writeText(text);
    return text;
  });
  if (!('clipboard' in navigator)) return null;
  return (
    <>
      <button type="button" class="plain" onClick={() => copy.start()}>
        {copy.result === text ? 'Copied' : 'Copy'}
      </button>
      <Failure of={copy.failure} />
    </>
  );
}
