/** What a person wants to know whose command stands still most of the time: that a limit does it, and how to raise it. */
export function rateLimitHint(requestsPerMinute: number, requests?: number): string {
  const minutes = requests === undefined ? 0 : Math.ceil(requests / requestsPerMinute);
  const duration = minutes > 1 ? `: ${requests} take about ${minutes} minutes` : '';
  return (
    `maxsimd: the tenant may send ${requestsPerMinute} requests a minute, which holds this up${duration}. On the ` +
    `service's machine "maxsimd tenant limits TENANT --requests-per-minute N" raises the limit.`
  );
}
