/** Installs the servers, before tests that run side by side would. */
import { installServers } from './install.ts';

await installServers();
