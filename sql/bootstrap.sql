-- Version 0: the schema's own ledger. The installer creates the schema, runs this file once, in
-- one transaction, and records it as version 0. Frozen once released, like any migration.

comment on schema counterfoil is
'Counterfoil: durable runs, with every fact about them accounted for exactly once. Nothing here is for hand edits: callers use the functions, DBAs `counterfoil migrate` and `verify`.';

create table counterfoil.schema_migrations (
    version integer not null,
    name text not null,
    checksum text not null,
    package_version text not null,
    applied_by text not null,
    applied_at timestamptz not null,
    duration_ms integer,
    constraint schema_migrations_pkey primary key (version),
    constraint schema_migrations_version_check check (version >= 0),
    constraint schema_migrations_checksum_check check (checksum ~ '^[0-9a-f]{64}$'),
    constraint schema_migrations_duration_check check (duration_ms >= 0)
);

comment on table counterfoil.schema_migrations is
'Which migrations this schema has had, one row each, written first in the migration''s own transaction. Version 0 is the bootstrap that created this table.';
comment on column counterfoil.schema_migrations.version is
'The migration''s number: 1 for migrations/0001_*.sql. The highest is the schema''s version.';
comment on column counterfoil.schema_migrations.name is
'The migration''s name: the file''s without number and ending.';
comment on column counterfoil.schema_migrations.checksum is
'sha256, in hex, of the file as shipped (LF line ends, before another schema name is put in).';
comment on column counterfoil.schema_migrations.package_version is
'Version of the counterfoil package that applied it.';
comment on column counterfoil.schema_migrations.applied_by is
'The login (session_user) that applied it.';
comment on column counterfoil.schema_migrations.applied_at is
'When it began, by the database''s clock.';
comment on column counterfoil.schema_migrations.duration_ms is
'How long it ran, in milliseconds, up to the end of its own statements; the commit is not in it.';

create table counterfoil.schema_functions (
    signature text not null,
    name text not null,
    source text not null,
    since_version text,
    package_version text not null,
    checksum text not null,
    definition_checksum text not null,
    installed_at timestamptz not null,
    constraint schema_functions_pkey primary key (signature),
    constraint schema_functions_checksum_check check (checksum ~ '^[0-9a-f]{64}$'),
    constraint schema_functions_definition_checksum_check
    check (definition_checksum ~ '^[0-9a-f]{64}$')
);

comment on table counterfoil.schema_functions is
'Which functions the package has installed here, one row for each overload. They are installed together, in one transaction with these rows and the grants.';
comment on column counterfoil.schema_functions.signature is
'Name and input types as the server spells them with only pg_catalog in the search path.';
comment on column counterfoil.schema_functions.name is
'The function''s name without schema and types: the key of the grants matrix.';
comment on column counterfoil.schema_functions.source is
'The file it came from, below the package''s sql folder.';
comment on column counterfoil.schema_functions.since_version is
'The schema version that first had it, from the file''s header; null where that does not say.';
comment on column counterfoil.schema_functions.package_version is
'Version of the counterfoil package that installed it; an older package refuses to install over it.';
comment on column counterfoil.schema_functions.checksum is
'sha256, in hex, of that file as shipped (LF line ends, before another schema name is put in).';
comment on column counterfoil.schema_functions.definition_checksum is
'sha256, in hex, of pg_get_functiondef right after installation; a difference means that someone replaced the function in place.';
comment on column counterfoil.schema_functions.installed_at is
'When this definition was last installed, by the database''s clock.';
