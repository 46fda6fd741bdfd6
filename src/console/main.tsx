import { render } from 'preact';
import { Api } from './api.ts';
import { OperatorPage } from './operator/operator-page.tsx';
import { Frame } from './parts/frame.tsx';
import { IndexView, NamedIndex } from './views/index-view.tsx';
import { Overview } from './views/overview.tsx';
import { ScoreView } from './views/score-view.tsx';
import { UsageView } from './views/usage-view.tsx';

const sections = { '#/': 'Overview', '#/score': 'Score', '#/usage': 'Usage' };

function TenantPage() {
  return (
    <Frame
      connect={Api}
      sections={sections}
      place="maxsimd console"
      keyName="API key"
      note="The session lasts twelve hours and may do what the key may. Requests of this page count as requests of the tenant."
    >
      {(api, address, access) => <View api={api} address={address} mayChange={access === 'full'} />}
    </Frame>
  );
}

function View({ api, address, mayChange }: { api: Api; address: string; mayChange: boolean }) {
  const [, indexId, rest = '', tab = '', search = ''] =
    /^#\/indexes\/([^/?]+)((?:\/([^?]*))?(?:\?(.*))?)$/.exec(address) ?? [];
  if (indexId !== undefined && /^name(?::|%3A)/i.test(indexId)) {
    return <NamedIndex key={address} api={api} name={indexId} rest={rest} />;
  }
  if (indexId !== undefined) {
    return (
      <IndexView key={indexId} api={api} indexId={indexId} tab={tab} search={search} mayChange={mayChange} />
    );
  }
  if (address === '#/score') return <ScoreView api={api} />;
  if (address === '#/usage') return <UsageView api={api} />;
  return <Overview api={api} mayChange={mayChange} />;
}

const isForOperators = document.body.dataset['audience'] === 'operators';
render(isForOperators ? <OperatorPage /> : <TenantPage />, document.getElementById('app')!);
