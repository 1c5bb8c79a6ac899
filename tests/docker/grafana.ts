// What Grafana reads of docker/monitoring: its own types, made strict. grafana.test.mjs lets TypeScript hold the files
// against them; nothing here is run.
import type * as grafana from '../api/node_modules/@grafana/schema';
import type * as timeseries from '../api/node_modules/@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';
import type * as prometheus from '../api/node_modules/@grafana/grafana-foundation-sdk/dist/prometheus';
import type * as units from '../api/node_modules/@grafana/grafana-foundation-sdk/dist/units';

// A document holds the values of enumerations, where TypeScript wants their names.
type Json<T> =
  T extends string ? `${T}` :
  T extends number ? (`${T}` extends `${infer Value extends number}` ? Value : never) :
  T extends object ? { [Key in keyof T]: Json<T[Key]> } :
  T;

// Grafana's type of a panel takes any visualisation, options, unit and query, and needs no data source; this one does not
// and does. Those that it names by itself are needed too.
interface Drawn<Type, Options, Custom> extends Omit<Json<grafana.Panel>, 'type' | 'options' | 'fieldConfig'> {
  type: Type;
  id: number;
  title: string;
  gridPos: grafana.GridPos;
  datasource: { type: 'prometheus'; uid: string };
  options: Json<Options>;
  fieldConfig: {
    defaults: Omit<Json<grafana.FieldConfig>, 'custom' | 'unit'> & { unit: (typeof units)[keyof typeof units]; custom?: Json<Custom> };
    overrides: Json<grafana.FieldConfigSource['overrides']>;
  };
  targets: Json<Omit<prometheus.dataquery, '_implementsDataqueryVariant'>>[];
}

export interface Dashboard extends Omit<Json<grafana.Dashboard>, 'panels'> {
  uid: string;
  title: string;
  // A visualisation that is not here yet is another member of a union, with the types from its folder beside timeseries.
  panels: Drawn<'timeseries', timeseries.Options, timeseries.FieldConfig>[];
}

// Of what it is provisioned with Grafana publishes no types: these are the keys that its manual names.
export interface Datasources {
  apiVersion: 1;
  prune?: boolean;
  deleteDatasources?: { name: string; orgId?: number }[];
  datasources: {
    name: string;
    type: 'prometheus';
    uid: string;
    access: 'proxy' | 'direct';
    url: string;
    orgId?: number;
    user?: string;
    database?: string;
    basicAuth?: boolean;
    basicAuthUser?: string;
    withCredentials?: boolean;
    isDefault?: boolean;
    jsonData?: Record<string, unknown>;
    secureJsonData?: Record<string, string>;
    version?: number;
    editable?: boolean;
  }[];
}

export interface Providers {
  apiVersion: 1;
  providers: {
    name: string;
    type: 'file';
    options: { path: string; foldersFromFilesStructure?: boolean };
    orgId?: number;
    folder?: string;
    folderUid?: string;
    disableDeletion?: boolean;
    updateIntervalSeconds?: number;
    allowUiUpdates?: boolean;
  }[];
}
