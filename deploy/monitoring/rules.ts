/** The alerts as a rule file of Prometheus. */
import { stringify } from 'yaml';
import { alerts, type Alert } from './alerts.ts';

export const rulesFile = 'alerts.yml';

/** The fields of an alert besides its labels. */
export function annotationsOf({ name, summary }: Alert): Readonly<Record<'summary' | 'runbook', string>> {
  return { summary, runbook: `docs/guide/operate.md#alerts, ${name}` };
}

export function rules(): string {
  const group = {
    name: 'maxsimd',
    rules: alerts.map((alert) => ({
      alert: alert.name,
      expr: alert.expression,
      for: alert.holds,
      labels: { severity: alert.severity },
      annotations: annotationsOf(alert),
    })),
  };
  return `# Made by \`node deploy/monitoring/generate.ts\` from alerts.ts.\n${stringify({ groups: [group] }, { singleQuote: true })}`;
}
