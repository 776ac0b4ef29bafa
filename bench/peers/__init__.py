"""What a team would write instead, in SQLAlchemy's async ORM over psycopg."""
