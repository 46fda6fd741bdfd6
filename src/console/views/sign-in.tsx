import { useState } from 'preact/hooks';
import type { Api } from '../api.ts';
import { Failure } from '../parts/failure.tsx';
import { Field, submitted, tied } from '../parts/field.tsx';
import { useWork } from '../work.ts';

/** Sends the key to the service once. The page does not keep it. */
export function SignIn({ api, onSignedIn }: { api: Api; onSignedIn: () => Promise<void> }) {
  const [key, setKey] = useState('');
  const signIn = useWork(async () => {
    await api.signIn(key.trim());
    await onSignedIn();
  });
  return (
    <main class="sign-in">
      <form onSubmit={submitted(signIn)}>
        <h1>maxsimd console</h1>
        <Field name="API key">
          <input type="password" required placeholder="qkv_live_…" {...tied(key, setKey)} />
        </Field>
        <p class="quiet">
          The page sends the key once, and gets a session of twelve hours that may do what the key may. This
          browser does not keep the key. Requests of this page count as requests of the tenant.
        </p>
        <button type="submit" class="primary" disabled={signIn.busy}>
          Sign in
        </button>
        <Failure of={signIn.failure} />
      </form>
    </main>
  );
}
