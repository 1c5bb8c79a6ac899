-- Equal plans are compiled by one verifier at a time, also when two look for work in the same moment. Of plans that
-- are running twice already, one goes on; the others wait for its word.
UPDATE verification_plans p SET state = 'queued', lease_until = NULL, stage = '', changes = changes + 1
    WHERE state = 'running' AND EXISTS (SELECT FROM verification_plans o WHERE o.state = 'running' AND o.plan_sha256 = p.plan_sha256
                                        AND (o.verification_id, o.rank) < (p.verification_id, p.rank));
CREATE UNIQUE INDEX verification_plans_running ON verification_plans (plan_sha256) WHERE state = 'running';
