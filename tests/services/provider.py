"""Makes a server look like a managed one: no superuser for us, and much that is not ours.

Everything here is made by the superuser, who stands for the provider, before citeledger comes.
"""

from __future__ import annotations

from typing import Any

import psycopg

from support.deploy import checked
from support.server import DEPLOYER, Server

# The roles of PostgREST and Supabase. The last one is exempt from row security.
API_ROLES = ("anon", "authenticated", "service_role")
AUTHENTICATOR = "authenticator"
# What an impostor of gen_random_uuid() answers.
NOT_RANDOM = "00000000-0000-4000-8000-000000000000"

ROLES = f"""
create role {DEPLOYER} login nosuperuser createrole createdb noreplication nobypassrls;
create role anon nologin inherit;
create role authenticated nologin inherit;
create role service_role nologin inherit bypassrls;
create role {AUTHENTICATOR} login noinherit;
grant anon, authenticated, service_role to {AUTHENTICATOR};
"""

# Names that citeledger's own text uses, in schemas that are searched before the system's. Each
# impostor would do harm at once, and nothing here is executable by anybody but through its name.
IMPOSTORS = f"""
create schema extensions;
grant usage on schema extensions to public;
create function extensions.gen_random_uuid() returns uuid language sql
  as $$select '{NOT_RANDOM}'::pg_catalog.uuid$$;
create function extensions.digest(text, text) returns bytea language sql
  as $$select ''::pg_catalog.bytea$$;
create function public.gen_random_uuid() returns uuid language sql
  as $$select '{NOT_RANDOM}'::pg_catalog.uuid$$;
create function public.now() returns timestamptz language sql
  as $$select 'epoch'::pg_catalog.timestamptz$$;
create function public.clock_timestamp() returns timestamptz language sql
  as $$select 'epoch'::pg_catalog.timestamptz$$;
create function public.lower(text) returns text language sql as $$select 'lowered'::text$$;
create function public.format(text, text) returns text language sql as $$select 'select 1'::text$$;
create function public.same(pg_catalog.uuid, pg_catalog.uuid) returns boolean language sql
  as $$select true$$;
create operator public.= (
  leftarg = pg_catalog.uuid, rightarg = pg_catalog.uuid, function = public.same
);
"""

# Supabase's own default privileges, and worse: whatever the deployer makes anywhere is everybody's.
DEFAULT_PRIVILEGES = f"""
alter default privileges for role {DEPLOYER} in schema public
  grant all on tables to anon, authenticated, service_role;
alter default privileges for role {DEPLOYER} in schema public
  grant all on functions to anon, authenticated, service_role;
alter default privileges for role {DEPLOYER} in schema public
  grant all on sequences to anon, authenticated, service_role;
alter default privileges for role {DEPLOYER} grant all on tables to public;
alter default privileges for role {DEPLOYER} grant all on functions to public, anon;
alter default privileges for role {DEPLOYER} grant all on sequences to public;
alter default privileges for role {DEPLOYER} grant all on types to public, anon;
alter default privileges for role {DEPLOYER} grant all on schemas to public, anon;
"""

# A provider's event triggers: they tell PostgREST to read the schema again, write a journal that is
# the provider's alone, and give the provider's roles what is made in the schema public.
EVENT_TRIGGERS = """
create schema provider;
create table provider.journal (command text, object text);
create function provider.watch() returns event_trigger language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
declare
  v_command record;
begin
  for v_command in select * from pg_event_trigger_ddl_commands() loop
    insert into provider.journal values (v_command.command_tag, v_command.object_identity);
    if v_command.schema_name = 'public' and v_command.command_tag = 'CREATE TABLE' then
      execute format('grant all on %s to anon', v_command.object_identity);
    end if;
  end loop;
  notify pgrst, 'reload schema';
end
$$;
create function provider.watch_drops() returns event_trigger language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
declare
  v_object record;
begin
  for v_object in select * from pg_event_trigger_dropped_objects() loop
    insert into provider.journal values ('DROP', v_object.object_identity);
  end loop;
  notify pgrst, 'reload schema';
end
$$;
create event trigger provider_watch on ddl_command_end execute function provider.watch();
create event trigger provider_watch_drops on sql_drop execute function provider.watch_drops();
"""


def make_roles(server: Server) -> None:
    """Make the provider's roles and the deployer, who is no superuser."""
    checked(server.psql("-q", stdin=ROLES))


def furnish(server: Server, dbname: str, *texts: str) -> None:
    """Put what the provider has into a database; nobody of ours may create in public."""
    closed = """
alter schema public owner to postgres;
revoke create on schema public from public;
grant usage on schema public to public;
"""
    checked(server.psql("-q", dbname=dbname, stdin="".join((closed, *texts))))
    checked(
        server.psql(
            "-q",
            "-c",
            f'alter role {DEPLOYER} in database "{dbname}"'
            " set search_path = public, extensions, pg_catalog",
            dbname=dbname,
        )
    )


def has_pgcrypto(connection: psycopg.Connection[Any]) -> bool:
    """Tell whether the server ships pgcrypto at all; an embedded one does not."""
    found = connection.execute(
        "select from pg_catalog.pg_available_extensions where name = 'pgcrypto'"
    ).fetchone()
    return found is not None
