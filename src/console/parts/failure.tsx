/** The message of a failure. Screen readers read it at once. */
export function Failure({ of: message }: { of: string | undefined }) {
  return (
    <p role="alert" class="failure">
      {message}
    </p>
  );
}
