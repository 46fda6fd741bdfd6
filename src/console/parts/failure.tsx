/** What went wrong, read out at once. */
export function Failure({ of: message }: { of: string | undefined }) {
  return (
    <p role="alert" class="failure">
      {message}
    </p>
  );
}
