-- Ids of what is listed newest first are made by the database: those that daemons made sorted by the clock of each daemon,
-- and what one that was ahead had stored was the newest until the others had come as far. The twelve bits behind the
-- millisecond are the fraction of it (RFC 9562, 6.2, method 3), so that what is stored within one is in order too.
CREATE OR REPLACE FUNCTION uuid_v7() RETURNS uuid LANGUAGE sql VOLATILE AS $$
    SELECT encode(set_byte(set_byte(overlay(uuid_send(gen_random_uuid())
        PLACING substring(int8send(t.us / 1000) FROM 3) FROM 1 FOR 6), 6, 112 + t.fraction / 256), 7, t.fraction % 256), 'hex')::uuid
    FROM (SELECT n.us, (n.us % 1000 * 4096 / 1000)::integer AS fraction
        FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS us) n) t
$$;
