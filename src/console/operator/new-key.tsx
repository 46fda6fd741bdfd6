export function NewKey({ of: key }: { of: string }) {
  return (
    <p role="status">
      The API key is shown this once: <code>{key}</code>
    </p>
  );
}
