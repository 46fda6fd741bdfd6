/** Installs the servers and the checks before the tests, which run side by side. */
import { installChecks, installServers } from './install.ts';

await installServers();
await installChecks();
