/** An index, with its search, documents, settings and internals. */
import { useRef } from 'preact/hooks';
import type { Api } from '../api.ts';
import { DocumentView } from './document-view.tsx';
import { DocumentsView } from './documents-view.tsx';
import { EmptyIndex } from './empty-index.tsx';
import { Failure } from '../parts/failure.tsx';
import { many } from '../format.ts';
import { InternalsView } from './internals-view.tsx';
import { SearchView } from './search-view.tsx';
import { SettingsView } from './settings-view.tsx';
import { useLoaded } from '../work.ts';

const tabs = [
  { path: '', name: 'Search' },
  { path: 'documents', name: 'Documents' },
  { path: 'settings', name: 'Settings' },
  { path: 'internals', name: 'Internals' },
];

export interface IndexViewProps {
  readonly api: Api;
  readonly indexId: string;
  readonly tab: string;
  /** The search in the address, if the tab of searches is shown. */
  readonly search: string;
  readonly mayChange: boolean;
}

/** A link by a name, as `name:NAME`, becomes the link of the index that has it now. `rest`: the address behind the name. */
export function NamedIndex({ api, name, rest }: { api: Api; name: string; rest: string }) {
  const index = useLoaded(async () => {
    const { body } = await api.index(encodeURIComponent(decodeURIComponent(name)));
    location.replace(`#/indexes/${body.id}${rest}`);
  });
  return <Failure of={index.failure} />;
}

export function IndexView({ api, indexId, tab, search, mayChange }: IndexViewProps) {
  const index = useLoaded(async () => (await api.index(indexId)).body);
  const count = useLoaded(async () => (await api.count(indexId)).body);
  const { result: row } = index;
  const isEmpty = count.result?.documents === 0;
  const [current = '', docId] = tab.split('/');
  const address = `#/indexes/${indexId}`;
  // A search stays when the person looks at another tab.
  const latest = useRef(search);
  if (current === '') latest.current = search;
  const searched = latest.current === '' ? address : `${address}?${latest.current}`;
  return (
    <>
      <div>
        <h1>{row?.name ?? 'Index'}</h1>
        {count.result !== undefined && (
          <p class="quiet">
            {many(count.result.documents, 'document')} in {many(count.result.chunks, 'chunk')}, id{' '}
            <code>{indexId}</code>
          </p>
        )}
      </div>
      <nav class="tabs" aria-label="Index">
        {tabs.map(({ path, name }) => (
          <a
            key={path}
            href={path === '' ? searched : `${address}/${path}`}
            aria-current={path === current ? 'page' : undefined}
          >
            {name}
          </a>
        ))}
      </nav>
      <Failure of={index.failure ?? count.failure} />
      {row !== undefined && (
        <>
          {isEmpty && (current === '' || tab === 'documents') && (
            <EmptyIndex index={row} mayChange={mayChange} />
          )}
          <div class="stacked" hidden={current !== ''}>
            <SearchView
              api={api}
              indexId={indexId}
              search={latest.current}
              mayMatch={(row.match_fields ?? []).length > 0}
            />
          </div>
          {current === 'documents' &&
            (docId === undefined ? (
              <DocumentsView
                api={api}
                indexId={indexId}
                mayChange={mayChange}
                onChange={() => count.start()}
              />
            ) : (
              <DocumentView
                api={api}
                indexId={indexId}
                docId={decodeURIComponent(docId)}
                mayChange={mayChange}
                onDeleted={() => count.start()}
              />
            ))}
          {current === 'settings' && (
            <SettingsView api={api} index={row} mayChange={mayChange} onChange={() => index.start()} />
          )}
          {current === 'internals' && <InternalsView api={api} index={row} />}
        </>
      )}
    </>
  );
}
