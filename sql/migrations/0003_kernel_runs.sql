-- Simulations and tunings of kernels are runs of one kind: what is compared and looked up is the kernel. Runs of the
-- kinds that go were never written.
ALTER TABLE runs DROP CONSTRAINT runs_kind_check;
ALTER TABLE runs ADD CONSTRAINT runs_kind_check CHECK (kind IN ('estimate', 'advise', 'kernel'));
