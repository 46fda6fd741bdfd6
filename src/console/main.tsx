import { render } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { Api } from './api.ts';
import { Failure } from './parts/failure.tsx';
import { IndexView } from './views/index-view.tsx';
import { Indexes } from './views/indexes.tsx';
import { ScoreView } from './views/score-view.tsx';
import { SignIn } from './views/sign-in.tsx';
import { UsageView } from './views/usage-view.tsx';
import { useWork } from './work.ts';

const sections = [
  { address: '#/', name: 'Indexes' },
  { address: '#/score', name: 'Score' },
  { address: '#/usage', name: 'Usage' },
];

function App() {
  const [signedIn, setSignedIn] = useState<boolean>();
  const api = useMemo(() => new Api(() => setSignedIn(false)), []);
  const signOut = useWork(() => api.signOut());
  const address = useAddress();
  useEffect(() => {
    // The cookie of an earlier visit may still be valid.
    api.usage().then(
      () => setSignedIn(true),
      () => setSignedIn(false),
    );
  }, [api]);

  if (signedIn === undefined) return null;
  if (!signedIn) return <SignIn api={api} onSignedIn={() => setSignedIn(true)} />;
  const indexId = /^#\/indexes\/([\w-]+)$/.exec(address)?.[1];
  const current = indexId === undefined ? address : '#/';
  return (
    <>
      <header>
        <a class="brand" href="#/">
          maxsimd
        </a>
        <nav aria-label="Sections">
          {sections.map((section) => (
            <a
              key={section.address}
              href={section.address}
              aria-current={section.address === current ? 'page' : undefined}
            >
              {section.name}
            </a>
          ))}
        </nav>
        <button type="button" disabled={signOut.busy} onClick={() => signOut.start()}>
          Sign out
        </button>
      </header>
      <main>
        {signOut.failure !== undefined && <Failure of={signOut.failure} />}
        {indexId !== undefined ? (
          <IndexView key={indexId} api={api} indexId={indexId} />
        ) : address === '#/score' ? (
          <ScoreView api={api} />
        ) : address === '#/usage' ? (
          <UsageView api={api} />
        ) : (
          <Indexes api={api} />
        )}
      </main>
    </>
  );
}

function useAddress(): string {
  const read = () => (location.hash === '' ? '#/' : location.hash);
  const [address, setAddress] = useState(read());
  useEffect(() => {
    const change = () => setAddress(read());
    addEventListener('hashchange', change);
    return () => removeEventListener('hashchange', change);
  }, []);
  return address;
}

render(<App />, document.getElementById('app')!);
