import { useState } from 'preact/hooks';
import type { Connection } from '../connection.ts';
import { Failure } from '../parts/failure.tsx';
import { Field, submitted, tied } from '../parts/field.tsx';
import { useWork } from '../work.ts';

/** Sends the key to the service once. The page does not keep it. */
export interface SignInProps {
  readonly connection: Connection;
  /** Where the person is, and the key that opens it. */
  readonly place: string;
  readonly keyName: string;
  readonly note: string;
  /** Why a session has ended, or could not begin. */
  readonly reason?: string | undefined;
  readonly onSignedIn: () => Promise<void>;
}

export function SignIn({ connection, place, keyName, note, reason, onSignedIn }: SignInProps) {
  const [key, setKey] = useState('');
  const signIn = useWork(async () => {
    await connection.signIn(key.trim());
    await onSignedIn();
  });
  return (
    <main class="sign-in">
      <form onSubmit={submitted(signIn)}>
        <h1>{place}</h1>
        <Field name={keyName}>
          <input type="password" required {...tied(key, setKey)} />
        </Field>
        <p class="quiet">The page sends the key once, and this browser does not keep it. {note}</p>
        <button type="submit" class="primary" disabled={signIn.busy}>
          Sign in
        </button>
        <Failure of={signIn.failure ?? (signIn.busy ? undefined : reason)} />
      </form>
    </main>
  );
}
