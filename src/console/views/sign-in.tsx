import { useState } from 'preact/hooks';
import type { Api } from '../api.ts';
import { Failure } from '../parts/failure.tsx';
import { Field, tied } from '../parts/field.tsx';
import { useWork } from '../work.ts';

/** The key goes to the service once, and is forgotten here. */
export function SignIn({ api, onSignedIn }: { api: Api; onSignedIn: () => void }) {
  const [key, setKey] = useState('');
  const signIn = useWork(async () => {
    await api.signIn(key.trim());
    onSignedIn();
  });
  const submit = (event: Event) => {
    event.preventDefault();
    signIn.start();
  };
  return (
    <main class="sign-in">
      <form onSubmit={submit}>
        <h1>maxsimd console</h1>
        <Field name="API key">
          <input type="password" required placeholder="qkv_live_…" {...tied(key, setKey)} />
        </Field>
        <p class="note">
          The key is exchanged for a session of twelve hours. This browser does not keep it. Requests made
          here count as requests of the tenant.
        </p>
        <button type="submit" class="primary" disabled={signIn.busy}>
          Sign in
        </button>
        <Failure of={signIn.failure} />
      </form>
    </main>
  );
}
