import { userInfo } from 'node:os';

/** Who gives the commands, for the audit log. */
export function commandLineActor(): string {
  try {
    return `cli:${userInfo().username}`;
  } catch {
    // A user without a name, as in some containers.
    return 'cli';
  }
}
