/** Installs the servers and the checks of this folder, before tests that run side by side would. */
import { installChecks, installServers } from './install.ts';

await installServers();
await installChecks();
