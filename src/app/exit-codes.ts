// How the server process ends, for service managers and scripts. docs/reference/config.md lists them.

export const EXIT_OK = 0
/** The broker made a mistake: an assertion failed or an exception went uncaught. */
export const EXIT_INTERNAL = 1
/** Bad arguments or configuration: a restart will not help. */
export const EXIT_CONFIG = 2
/** The data directory is in use, damaged, newer, or belongs to another: a restart will not help. */
export const EXIT_DATA_DIR = 3
/** An address could not be listened on. */
export const EXIT_LISTEN = 4
/** The disk failed while serving. Nothing more was acknowledged. */
export const EXIT_DISK = 5
