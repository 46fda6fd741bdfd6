import { Copy } from '../parts/copy.tsx';

export function NewKey({ of: key }: { of: string }) {
  return (
    <p role="status">
      The API key is shown this once: <code>{key}</code> <Copy text={key} />
    </p>
  );
}
