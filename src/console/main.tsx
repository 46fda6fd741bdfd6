import { render } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { Api } from './api.ts';
import { Failure } from './parts/failure.tsx';
import { IndexView } from './views/index-view.tsx';
import { Overview } from './views/overview.tsx';
import { ScoreView } from './views/score-view.tsx';
import { SignIn } from './views/sign-in.tsx';
import { UsageView } from './views/usage-view.tsx';
import { useWork } from './work.ts';

const sections = [
  { address: '#/', name: 'Overview' },
  { address: '#/score', name: 'Score' },
  { address: '#/usage', name: 'Usage' },
];

function App() {
  /** `undefined`: not known yet. */
  const [access, setAccess] = useState<'full' | 'read' | 'none'>();
  const api = useMemo(() => new Api(() => setAccess('none')), []);
  const signOut = useWork(() => api.signOut());
  const address = useAddress();
  const begin = () =>
    api.session().then(
      ({ body }) => setAccess(body.access),
      () => setAccess('none'),
    );
  // The cookie of an earlier visit may still be valid.
  useEffect(() => void begin(), [api]);

  if (access === undefined) return null;
  if (access === 'none') return <SignIn api={api} onSignedIn={begin} />;
  const [, indexId, tab = ''] = /^#\/indexes\/([\w-]+)(?:\/(.*))?$/.exec(address) ?? [];
  const current = indexId === undefined ? address : '#/';
  return (
    <>
      <header>
        <a class="brand" href="#/" aria-label="maxsimd">
          <img src={icon} alt="" />
          <span>maxsimd</span>
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
        <button type="button" class="plain" disabled={signOut.busy} onClick={() => signOut.start()}>
          Sign out
        </button>
      </header>
      <main>
        {signOut.failure !== undefined && <Failure of={signOut.failure} />}
        {indexId !== undefined ? (
          <IndexView key={indexId} api={api} indexId={indexId} tab={tab} mayChange={access === 'full'} />
        ) : address === '#/score' ? (
          <ScoreView api={api} />
        ) : address === '#/usage' ? (
          <UsageView api={api} />
        ) : (
          <Overview api={api} mayChange={access === 'full'} />
        )}
      </main>
    </>
  );
}

/** The icon of the page itself. */
const icon = document.querySelector<HTMLLinkElement>('link[rel="icon"]')?.href;

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
