function n(e){let t=new Date;return t.setDate(t.getDate()+e),t.setHours(8,0,0,0),t.toISOString()}export{n as a};
