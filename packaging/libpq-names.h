/* libpq and QuickJS, which the program links statically, both have a function of this name. Only libpq defines FRONTEND. */
#ifdef FRONTEND
#define unicode_normalize pg_unicode_normalize
#endif
