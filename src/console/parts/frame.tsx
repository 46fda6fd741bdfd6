/** The frame of every view: the sections and the button to sign out. Without a session it shows the form to sign in. */
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { ApiFailure, type Connection, type OnSignedOut } from '../connection.ts';
import { Failure } from './failure.tsx';
import { SignIn, type SignInProps } from '../views/sign-in.tsx';
import { useWork } from '../work.ts';

export interface FrameProps<Connected extends Connection> extends Pick<
  SignInProps,
  'place' | 'keyName' | 'note'
> {
  /** It is told of its end by `onSignedOut`. */
  readonly connect: new (onSignedOut: OnSignedOut) => Connected;
  /** Each by its address. */
  readonly sections: Readonly<Record<string, string>>;
  readonly children: (connected: Connected, address: string, access: string) => ComponentChildren;
}

interface Session {
  /** `none`: nobody is signed in. */
  readonly access: string;
  /** Why nobody is. */
  readonly reason?: string | undefined;
}

/** The icon of the page itself. */
const icon = document.querySelector<HTMLLinkElement>('link[rel="icon"]')?.href;

export function Frame<Connected extends Connection>({
  connect: Connected,
  sections,
  children,
  ...signIn
}: FrameProps<Connected>) {
  /** `undefined`: not known yet. */
  const [session, setSession] = useState<Session>();
  const [connection] = useState(
    () =>
      // Requests that waited behind the first refusal are refused without a reason.
      new Connected((reason) =>
        setSession((before) => ({ access: 'none', reason: reason ?? before?.reason })),
      ),
  );
  const signOut = useWork(() => connection.signOut());
  const address = useAddress();
  const begin = () =>
    connection.ask<{ readonly access: string }>('GET', 'session').then(
      ({ body }) => setSession(body),
      (error: unknown) => {
        // The connection has told of a session that has ended.
        if (error instanceof ApiFailure && error.status !== 401)
          setSession({ access: 'none', reason: error.message });
      },
    );
  // The cookie of an earlier visit may still be valid.
  useEffect(() => void begin(), [connection]);

  if (session === undefined) return null;
  const { access, reason } = session;
  if (access === 'none')
    return <SignIn connection={connection} {...signIn} reason={reason} onSignedIn={begin} />;
  return (
    <>
      <header>
        <a class="brand" href="#/" aria-label="maxsimd">
          <img src={icon} alt="" />
          <span>maxsimd</span>
        </a>
        <nav aria-label="Sections">
          {Object.entries(sections).map(([section, name], at) => (
            <a
              key={section}
              href={section}
              aria-current={section === address || (!(address in sections) && at === 0) ? 'page' : undefined}
            >
              {name}
            </a>
          ))}
        </nav>
        <button type="button" class="plain" disabled={signOut.busy} onClick={() => signOut.start()}>
          Sign out
        </button>
      </header>
      <main>
        {signOut.failure !== undefined && <Failure of={signOut.failure} />}
        {children(connection, address, access)}
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
